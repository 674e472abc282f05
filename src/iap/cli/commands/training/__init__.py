"""Commands that train policies, and those that list and repeat what is trained."""
