"""Gates: when a run passes, fails, or can't tell. Arithmetic and rules; what pytest does with them is the plugin's."""
