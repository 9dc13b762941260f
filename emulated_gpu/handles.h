// Which driver objects exist: a handle that a program passes is looked up here before it is used,
// so a stale one is an error and not a crash.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

// Returns from the entry point with the code of a step that failed.
#define EMULATED_TRY(step)                                        \
    if (const CUresult failed = (step); failed != CUDA_SUCCESS) { \
        return failed;                                            \
    }

namespace hetcoll::emulated_gpu {

// Thread safe. The handle of an object is its address.
template <class T> class HandleTable {
public:
    using Pointer = std::shared_ptr<T>;

    T *add(Pointer object)
    {
        const std::lock_guard lock(mutex_);
        T *handle = object.get();
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    // Null if there is no such object.
    [[nodiscard]] Pointer find(const void *handle) const
    {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(handle);
        return found != objects_.end() ? found->second : nullptr;
    }
    // Removes it; those who still hold it may finish with it.
    Pointer take(const void *handle)
    {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            return nullptr;
        }
        Pointer object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    [[nodiscard]] std::vector<Pointer> all() const
    {
        const std::lock_guard lock(mutex_);
        std::vector<Pointer> objects;
        for (const auto &[handle, object] : objects_) {
            objects.push_back(object);
        }
        return objects;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<const void *, Pointer> objects_;
};

} // namespace hetcoll::emulated_gpu
