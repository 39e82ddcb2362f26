"""The interfaces of other libraries, answered by our mechanisms."""
