// Loading archives.
#include "script/import.h"

#include <fstream>

#include <rushlight/executor.h>

#include "core/allowance.h"
#include "script/archive_code.h"

namespace rushlight::script {

namespace {
// What restoring objects may take beyond the size of the file.
constexpr uint64_t bytes_anyway = uint64_t{1} << 26;
constexpr uint64_t most_rounds = 1000000;

jit::Module read_module(const std::shared_ptr<serialize::Source>& source,
                        std::optional<Device> device, jit::ExtraFilesMap& extra_files) {
  serialize::CheckpointReader reader(source, false);
  RL_CHECK(reader.has_record("constants.pkl"),
           "PytorchStreamReader failed locating file constants.pkl: this is no archive of "
           "TorchScript. torch.load reads checkpoints");
  const auto unit = std::make_shared<graph::CompilationUnit>();
  ArchiveCode code(reader, *unit);
  const IValue constants =
      read_objects(reader, "constants.pkl", "constants", code, *unit, device).root;
  if (constants.isTuple() || constants.isList()) {
    code.set_constants(constants.isTuple() ? constants.items() : constants.toListRef());
  } else {
    code.set_constants({constants});
  }
  ArchiveObjects objects = read_objects(reader, "data.pkl", "data", code, *unit, device);
  code.compile();
  const Allowance limited(bytes_anyway + 2 * source->size(), most_rounds);
  for (const auto& [object, state] : objects.restore) {
    jit::Method(object, *object->type->find_method("__setstate__"))({state});
  }
  Object* const root = object_of(objects.root);
  RL_CHECK(root != nullptr && root->type->form == ClassType::Form::Module,
           "the archive holds no module");
  for (auto& [name, contents] : extra_files) {
    const std::string record = "extra/" + name;
    if (reader.has_record(record)) {
      contents = reader.record(record);
    }
  }
  return jit::Module(intrusive_ptr<Object>(root));
}
}  // namespace

// Whatever is wrong with a file is an Error alone, but for what it lacks a form for and for what
// the system refused.
jit::Module load_module(const std::shared_ptr<serialize::Source>& source,
                        std::optional<Device> device, jit::ExtraFilesMap& extra_files) {
  try {
    return read_module(source, device, extra_files);
  } catch (const NotImplementedError&) {
    throw;
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const serialize::FileError&) {
    throw;
  } catch (const graph::Raised&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.what());
  }
}

}  // namespace rushlight::script

namespace rushlight::jit {

Module load(const std::string& path, std::optional<Device> device, ExtraFilesMap& extra_files) {
  RL_CHECK(std::ifstream(path).good(), "torch::jit::load: open file failed, file path: ", path);
  return rushlight::script::load_module(serialize::open_source(path, false), device, extra_files);
}

Module load(std::istream& stream, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return rushlight::script::load_module(serialize::stream_source(stream), device, extra_files);
}

Module load(const std::string& path, std::optional<Device> device, bool) {
  ExtraFilesMap none;
  return load(path, device, none);
}

Module load(std::istream& stream, std::optional<Device> device, bool) {
  ExtraFilesMap none;
  return load(stream, device, none);
}

}  // namespace rushlight::jit
