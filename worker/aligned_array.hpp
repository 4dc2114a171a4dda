// Memory aligned to a cache line (and to every SIMD width): what FFTW's plans and the kernels'
// buffers need.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace echelle {

// `size` values, not initialised: pages that are never written cost no memory.
template <typename T>
class AlignedArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    static constexpr std::align_val_t kAlignment{64};

    AlignedArray() = default;
    explicit AlignedArray(size_t size)
        : data_(static_cast<T*>(::operator new(size * sizeof(T), kAlignment))), size_(size) {}
    AlignedArray(const AlignedArray&) = delete;
    AlignedArray& operator=(const AlignedArray&) = delete;
    AlignedArray(AlignedArray&& other) noexcept { swap(other); }
    AlignedArray& operator=(AlignedArray&& other) noexcept {
        swap(other);
        return *this;
    }
    ~AlignedArray() { ::operator delete(data_, kAlignment); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

  private:
    void swap(AlignedArray& other) noexcept {
        T* data = data_;
        data_ = other.data_;
        other.data_ = data;
        const size_t size = size_;
        size_ = other.size_;
        other.size_ = size;
    }

    T* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace echelle
