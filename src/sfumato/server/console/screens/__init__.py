"""The screens, one file for each; `all_screens` lists them."""
