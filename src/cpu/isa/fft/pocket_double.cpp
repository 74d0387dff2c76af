#define RL_REAL double
#include "cpu/isa/fft/pocket.inc"
