"""Programs for the maintainers of this repository; nothing of the service imports them."""
