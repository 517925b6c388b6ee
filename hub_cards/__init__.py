"""Model cards of all systems, their template, and the Space: data of the package, kept where people look for them."""
