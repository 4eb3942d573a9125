"""The site: pages, figures, exercises in the page, and what builds them."""
