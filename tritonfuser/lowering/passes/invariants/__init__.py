"""Values of fewer axes than the kernels that compute them: computed once, where that pays."""
