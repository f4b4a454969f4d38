"""Shell completion: scripts for bash, zsh and fish, made from the parser itself."""
