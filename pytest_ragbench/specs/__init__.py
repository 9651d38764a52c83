"""``*.rag.yaml``: tests without Python, as plain data. The collector is in ``plugin/yaml_files.py``."""
