"""The catalogue of clusters: what each has, allows and charges."""
