"""The nouns of Teho: plain, typed, immutable data without behaviour of its own."""
