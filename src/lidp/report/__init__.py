"""Reports: figures as data first, drawing second, and pages that need nothing but a browser."""
