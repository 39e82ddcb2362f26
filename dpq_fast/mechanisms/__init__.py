"""One mechanism each, from the public arguments to the release."""
