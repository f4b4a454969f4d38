"""Privacy models: what an equivalence class must satisfy to be released."""
