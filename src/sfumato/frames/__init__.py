"""Tables in every form that people have, as Arrow: files, folders, and frames of other libraries."""
