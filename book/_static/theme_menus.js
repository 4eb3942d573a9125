/* The theme's menus, for which it would load the whole of Bootstrap. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const show = (button, open) => {
    button.setAttribute("aria-expanded", String(open));
    button.parentElement.querySelector(".dropdown-menu").classList.toggle("show", open);
  };
  const buttons = [...document.querySelectorAll("[data-bs-toggle='dropdown']")];
  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";
  for (const button of buttons)
    button.addEventListener("click", () => show(button, !isOpen(button)));
  document.addEventListener("click", (event) => {
    for (const button of buttons)
      if (!button.contains(event.target)) show(button, false);
  });
  document.addEventListener("keydown", (event) => {
    for (const button of buttons.filter(isOpen))
      if (event.key === "Escape") {
        show(button, false);
        button.focus();
      }
  });
  for (const button of buttons)
    button.parentElement.addEventListener("focusout", (event) => {
      if (!button.parentElement.contains(event.relatedTarget)) show(button, false);
    });
});
