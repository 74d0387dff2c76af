"""Settings of PyTorch's compiler that programs set; any name can be set, none changes anything."""

from rushlight._accepted import flags_of

globals().update(flags_of("_dynamo.config"))
