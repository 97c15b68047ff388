(ns crm
  "CRM helpers."
  {:visibility :prompt})

(def page-size 50)

(defn- normalize-id [raw] (str "norm:" raw))

(defn get-user
  "Return a CRM user by id."
  [id]
  (tool/call {:server "crm" :tool "get_user" :args {:id (normalize-id id)}}))
