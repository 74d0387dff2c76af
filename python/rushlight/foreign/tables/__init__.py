"""The manifest's tables, a file for each area; `rushlight.foreign` says what they mean."""
