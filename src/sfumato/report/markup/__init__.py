"""Static HTML and SVG: elements that escape, numerals, the style of a page, bars with whiskers."""
