"""The printable instruction sheet: what it says, in several languages, and as what it is printed."""
