"""Looking into models: what they think of the gold entities, and how they represent spans."""
