"""The teacher that several lectures of chapter 1 learn from."""
