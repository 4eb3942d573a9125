"""What pages show and nothing else uses: no check imports it, no wheel holds it."""
