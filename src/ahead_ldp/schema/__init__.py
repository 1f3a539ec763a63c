"""What people hold and what is asked about it: attributes, codes, columns, queries."""
