"""Recording a definition: handles, ops, layouts, domains, meshes."""
