"""The kill storm's parts: what is killed (`kinds`), how and when (`crew`, `hook`), again and again (`rounds`), and what
must be the same at the end (`same`)."""
