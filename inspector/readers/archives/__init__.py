"""Zip and tar as directories of members, and as folders of files; nothing is extracted."""
