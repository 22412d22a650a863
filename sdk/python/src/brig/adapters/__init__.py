"""One tool object for each agent framework; each module needs its framework, and no other does."""
