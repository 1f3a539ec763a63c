"""From raw estimates to better ones: non-negativity, consistency, maximum entropy, error bars."""
