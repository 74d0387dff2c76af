// Programs, as this instruction set runs them.
#pragma once

#include "cpu/program.h"

namespace rushlight::cpu::RL_ISA {

extern const ProgramRunner program_runner;

}  // namespace rushlight::cpu::RL_ISA
