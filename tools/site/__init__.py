"""Building the site and the book: pages, figures, what runs in a browser, pictures."""
