"""Many reports of one device."""
