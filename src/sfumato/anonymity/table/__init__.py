"""Tables of persons, encoded once: which columns identify, which are sensitive, and their categories."""
