"""Results and documents as JSON, with their schemas."""
