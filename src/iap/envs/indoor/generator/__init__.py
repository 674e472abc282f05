"""Generated apartments, written in the folder format of Gibson scenes.

| module | stage |
|---|---|
| `layout` | rooms, doors, windows, narrow gates |
| `furniture`, `fixtures`, `furnishing` | pieces of furniture, and where they stand |
| `surfaces` | everything as rectangles |
| `materials`, `light`, `atlas` | patterns, light and shadows, painted into textures |
| `apartment` | all stages, and the files |
"""
