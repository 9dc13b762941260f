// Which driver objects exist: a handle that a program passes is looked up here before it is used,
// so a stale one is an error and not a crash. From a hostile driver the handle of what was
// destroyed last is that of what is made next, and use of one that nothing has taken over aborts.
#pragma once

#include "emulated_gpu/hostility.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

// Returns from the entry point with the code of a step that failed.
#define EMULATED_TRY(step)                                        \
    if (const CUresult failed = (step); failed != CUDA_SUCCESS) { \
        return failed;                                            \
    }

namespace hetcoll::emulated_gpu {

// An address that nothing else has and that no program can read.
[[nodiscard]] void *fresh_handle();
// The end of a program that passes the handle of a destroyed `what` ("stream").
[[noreturn]] void abort_on_dead(const char *what, const void *handle);

// Thread safe.
template <class T> class HandleTable {
public:
    using Pointer = std::shared_ptr<T>;

    explicit HandleTable(const char *what, Hostility group = Hostility::kHandles)
        : what_(what), group_(group)
    {
    }

    // Returns its handle.
    void *add(Pointer object)
    {
        const std::lock_guard lock(mutex_);
        void *handle = nullptr;
        if (dead_.empty()) {
            handle = fresh_handle();
        } else {
            handle = dead_.back();
            dead_.pop_back();
        }
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    // Null if there is no such object.
    [[nodiscard]] Pointer find(const void *handle) const
    {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            check_dead(handle);
            return nullptr;
        }
        return found->second;
    }
    // Removes it; those who still hold it may finish with it.
    Pointer take(const void *handle)
    {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            check_dead(handle);
            return nullptr;
        }
        Pointer object = std::move(found->second);
        bury(found->first, group_);
        objects_.erase(found);
        return object;
    }
    // Removes all objects of which is_gone(object): their context is.
    template <class IsGone> void take_if(IsGone is_gone)
    {
        std::vector<Pointer> gone; // they end without the lock
        const std::lock_guard lock(mutex_);
        for (auto next = objects_.begin(); next != objects_.end();) {
            const auto entry = next++;
            if (is_gone(*entry->second)) {
                gone.push_back(std::move(entry->second));
                bury(entry->first, Hostility::kContexts);
                objects_.erase(entry);
            }
        }
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
    void bury(const void *handle, Hostility group)
    {
        if (is_hostile(group)) {
            dead_.push_back(const_cast<void *>(handle));
        }
    }
    void check_dead(const void *handle) const
    {
        if (std::find(dead_.begin(), dead_.end(), handle) != dead_.end()) {
            abort_on_dead(what_, handle);
        }
    }

    const char *what_;
    Hostility group_;
    mutable std::mutex mutex_;
    std::unordered_map<const void *, Pointer> objects_;
    std::vector<void *> dead_; // the last one is used next
};

} // namespace hetcoll::emulated_gpu
