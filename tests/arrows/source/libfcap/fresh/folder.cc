// A new folder without a room.
