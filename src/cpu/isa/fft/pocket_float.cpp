#define RL_REAL float
#include "cpu/isa/fft/pocket.inc"
