"""All runs of a user and of the user's group in a browser: `teho portal`."""
