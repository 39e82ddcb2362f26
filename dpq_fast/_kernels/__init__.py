"""The compiled kernels, one module per file of csrc/. Private: sizes are the caller's duty."""
