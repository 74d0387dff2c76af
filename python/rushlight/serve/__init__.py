"""`python -m rushlight.serve model.gguf`: a language model behind an HTTP endpoint on this machine.

The endpoint speaks OpenAI's protocol of completions and chats, and shows a page to chat on.
"""
