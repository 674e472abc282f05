"""Commands that measure this machine and mend the installation."""
