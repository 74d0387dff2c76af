"""What passes have in common."""
