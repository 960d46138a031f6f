// A subfolder is a room of its own, and this one has none.
