"""The OpenAI door: equal chats of any client become one call, streamed live to all who wait."""
