"""The papers' tables and claims: what each shows is data (`tables/`), and one runner makes all of it again."""
