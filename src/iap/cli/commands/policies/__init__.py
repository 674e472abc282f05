"""Commands that list, describe and convert policy files."""
