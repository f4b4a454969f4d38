"""The accountant: bounds from both sides, computed from closed forms and from dominating pairs."""
