// Objects of quantised layers in programs.
#pragma once

namespace rushlight::python {

void init_packed_layers();

}  // namespace rushlight::python
